CREATE TABLE tokens (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE answers (
  caller TEXT NOT NULL,
  key TEXT NOT NULL,
  digest TEXT NOT NULL,
  at REAL NOT NULL,
  status INTEGER NOT NULL,
  headers TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (caller, key)
) STRICT;
CREATE INDEX answers_by_age ON answers (at);
