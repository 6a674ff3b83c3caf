"""Sessions: turns as they are told, on disk before the answer, and gone when their time is over."""
