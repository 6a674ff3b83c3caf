"""A language model in place of the rules: the digest it reads, the answers it gives, the tokens it may use."""
