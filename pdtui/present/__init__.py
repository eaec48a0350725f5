"""Pure pictures of what the backend says: objects in, cells and lines out; no terminal needed."""
