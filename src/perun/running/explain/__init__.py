"""Why a version became slower: `perun explain`."""
