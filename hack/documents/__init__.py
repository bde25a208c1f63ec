"""What programs make of the documentation: tables in its pages and in the operator (`tables`), the site (`site`)."""
