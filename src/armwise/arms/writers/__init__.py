"""Writers of arm descriptions, into a new file or the user's own."""
