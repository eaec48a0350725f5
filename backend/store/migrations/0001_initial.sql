CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE hosts (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE groups (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE instances (
  id TEXT PRIMARY KEY,
  group_name TEXT NOT NULL REFERENCES groups (name),
  body TEXT NOT NULL
) STRICT;
CREATE INDEX instances_by_group ON instances (group_name);
CREATE TABLE documents (
  group_name TEXT NOT NULL,
  version INTEGER NOT NULL,
  saved_at REAL NOT NULL,
  actor TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (group_name, version, saved_at)
) STRICT;
CREATE TABLE intents (
  key TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  group_name TEXT NOT NULL,
  opened_at REAL NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  kind TEXT NOT NULL,
  level TEXT NOT NULL,
  group_name TEXT NOT NULL,
  instance TEXT NOT NULL,
  host TEXT NOT NULL,
  actor TEXT NOT NULL,
  message TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_group ON events (group_name, seq);
