"""What tests share: real services started for the run, doubles of what cannot be had here, real bugs."""
