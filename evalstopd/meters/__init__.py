"""What is measured of a running daemon, for who watches over it; nothing decides by it."""
