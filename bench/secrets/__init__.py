"""The benchmark of redaction: generated secrets, everyday forms, disguises and harmless look-alikes."""
