"""Set the words of the book in its one face: of pages, drawings in one size, lines of code."""
