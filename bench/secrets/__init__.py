"""What redaction finds and what it leaves: generated secrets, everyday forms, disguises and harmless look-alikes."""
