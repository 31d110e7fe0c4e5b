"""What keeps cells apart from the machine: the kinds by name, and how each is started."""
