"""Rules asked at every save; each is one small pure function with an id and a remedy."""
