"""Software bill of materials: what a project's firmware is made of, as components and relations, and as documents."""
