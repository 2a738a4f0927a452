"""Issues as people write them, three of each subject, in our own words: what the memory should find alike.

Some of each subject repeat an error message, others tell the same trouble in other words, and all share the boilerplate
of an issue template.
"""

TEMPLATE = """**Describe the bug**
{}

**Expected behavior**
It should work as described in the documentation. See above.

**Environment**
- OS: Ubuntu 22.04
- Python version: 3.11.4
- Package version: latest release from PyPI

<!-- Please search the existing issues before you open a new one. -->
"""

SUBJECTS: dict[str, tuple[str, str, str]] = {
    "dates": (
        "parse_date('') raises IndexError: string index out of range\nAn empty date string should give None, but the "
        "parser reads the first character before it looks at the length.",
        "Date parser crashes on ISO dates with a week number\nparse_date('2024-W05-3') fails with IndexError in "
        "_read_month. Week dates are part of ISO 8601.",
        "Wrong month from parse_date for two-digit years\nDates such as 31/12/99 are parsed with day and month "
        "swapped, so that the year rolls over.",
    ),
    "cache": (
        "TTLCache returns expired items\nAn item whose ttl has passed is still returned by cache.get() when the timer "
        "is frozen during iteration. Expire before lookup.",
        "LRU cache evicts the newest entry instead of the least recently used\nAfter cache.popitem() the order list "
        "is stale, and the eviction takes the wrong item from the cache.",
        "cachedmethod is not thread safe\nTwo threads that miss the cache at once both compute the value; with a lock "
        "given the lookup should hold it. The cache ends with a stale item.",
    ),
    "sql": (
        "Formatter loses comments in SELECT with a subquery\nsqlformat.format('select a -- note\\nfrom (select 1)') "
        "drops the comment and joins the lines of the SQL statement.",
        "SQL keywords in identifiers are uppercased\nA column named order_date becomes ORDER_date when "
        "keyword_case='upper' is passed to the SQL formatter.",
        "split() breaks a SQL statement inside BEGIN ... END\nCREATE TRIGGER bodies with several statements are split "
        "at each semicolon by the SQL parser.",
    ),
    "table": (
        "Column alignment is off for wide characters in the table\ntabulate pads by len(), so East Asian characters "
        "make the table's columns drift. Use the display width.",
        "Empty rows crash the table with tablefmt='grid'\nIndexError: list index out of range in _align_column when "
        "a table row has fewer columns than the headers.",
        "maxcolwidths cuts numbers in table cells\nFloats in a column are wrapped as if they were text when "
        "maxcolwidths is set; the table then shows half numbers.",
    ),
    "http": (
        "Redirect drops the request body on 307\nThe HTTP client sends GET after a 307 redirect. The method and body "
        "must be kept for a 307 or 308 redirect response.",
        "Timeout is ignored while the HTTP connection is opened\nclient.get(url, timeout=2) hangs for minutes when the "
        "server does not accept the connection. The connect timeout is never passed to the socket.",
        "Cookies from a redirect response are lost\nThe HTTP client follows the redirect but forgets Set-Cookie of "
        "the first response, so that login fails.",
    ),
    "unicode": (
        "UnicodeDecodeError when a config file is not UTF-8\nReading a latin-1 file ends in UnicodeDecodeError: "
        "'utf-8' codec can't decode byte 0xe9. The encoding should be an argument.",
        "BOM is not stripped from utf-8 config files\nA file with a byte order mark gives a first key of '\\ufeffname'"
        ". Decode with utf-8-sig encoding.",
        "Encoding of written files depends on the locale\nOn Windows the config file is written in cp1252 and cannot "
        "be read as utf-8 elsewhere. Always pass the encoding.",
    ),
    "cli": (
        "--output option is ignored by the export subcommand\nThe argument parser defines --output twice and the "
        "subparser's default None overrides the option given before the subcommand.",
        "Exit code is 0 although the command line was invalid\nUnknown options print the usage of the subcommand and "
        "exit with 0. argparse should end with 2.",
        "Shell completion fails for options with a dash\nCompleting --dry-run in a subcommand prints nothing: the "
        "parser's option names are looked up with underscores.",
    ),
    "regex": (
        "Catastrophic backtracking in the email regex\nValidating a long string of dots takes minutes: the pattern has "
        "nested quantifiers. A possessive or simpler regular expression is needed.",
        "Regex escapes are not handled in glob patterns\nglob_to_regex('a.b') matches 'axb' since the dot is not "
        "escaped in the regular expression that the pattern becomes.",
        "Named group of the pattern is matched twice\nre.error: redefinition of group name 'year' when two patterns "
        "are joined into one regular expression.",
    ),
    "memory": (
        "Memory grows with every request in the worker pool\nThe worker keeps a reference to each finished job in "
        "_results, so that memory leaks until the process is killed.",
        "Worker process is not reaped after a job is cancelled\nA cancelled job leaves a zombie worker in the pool. "
        "The pool should join the process.",
        "Pool deadlocks when a worker dies\nIf a worker process is killed while it holds the queue lock, the pool "
        "waits forever for the job's result.",
    ),
    "plot": (
        "Legend overlaps the axes when the figure is resized\nAfter figure.set_size_inches the legend keeps its old "
        "bounding box and covers the axes labels of the plot.",
        "Log scale axis shows no tick labels\nWith ax.set_yscale('log') and a range below one decade the plot's axis "
        "has no labels. The tick formatter returns empty strings.",
        "Colorbar label is cut off in the saved figure\nsavefig with a tight layout crops the colorbar label at the "
        "right of the axes in the plot.",
    ),
}
