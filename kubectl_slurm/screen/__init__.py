"""What is shown: `blocks` of text, `words` for times and lists, and `printing`, through which everything goes."""
