"""The body of an answer before it means anything: its text in pieces (`pieces`), and the JSON in it (`parsing`)."""
