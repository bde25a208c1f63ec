"""The documentation as a site: ``make docs`` builds it from the pages of the repository.

==============  =====================================================================================
room            concern
==============  =====================================================================================
`links`         links and headings of a page
`navigation`    which pages the site has, in which order, and what is wrong with the site
`stage`         lays the pages out as a generator wants them, and writes their navigation
==============  =====================================================================================

The generator, its theme and its search are in ``requirements/docs.txt``, their settings in ``mkdocs.yml``. Nothing here
imports them: another generator needs another file of settings.
"""
