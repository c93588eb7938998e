"""The audit: every decision with what it rests on, the chain that seals the book, decisions folded again."""
