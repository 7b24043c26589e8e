"""What commands print: tables, sentences, JSON and bars; nothing else of taskmix prints."""
