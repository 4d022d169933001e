"""Which tools and capabilities fit an intent (Epic 10, story 10.6): pure, from the catalog alone."""
