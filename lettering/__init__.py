"""Set the words of the book in its one face: of pages, and of drawings in one size."""
