"""Settings become adapters, adapters become a loop: the one package that imports concrete adapters."""
