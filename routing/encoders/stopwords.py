"""Words that say nothing of a task: those of English, and those of issue templates and tracebacks."""

_ENGLISH = """
about above after again against all also although always and any anyone are aren because been before being below
between both but can cannot could couldn did didn does doesn doing don done down during each either else even ever
every few for from further get gets getting give given gives got had hadn has hasn have haven having her here hers him
his how however into isn its itself just know let like likely look looks made make makes many may maybe might more most
much must need needs never nor not now off often once one only onto other our out over own per perhaps please put quite
rather really same saw say see seem seems seen she should shouldn since some something still such sure take than that
the their them then there these they thing things think this those though through thus too two under until upon use
used uses using very via want wanted wants was wasn way well were weren what when where whether which while who whose
why will with within without won would wouldn yes yet you your
"""
_ISSUES = """
actual actually add added additional attached behavior behaviour bug bugs case cases change changed check checked code
command context correct correctly current currently default describe description detail details environment error
errors example examples exception expect expected expects fail failed failing fails feature file files fix fixed follow
following found happen happened happens help import info information input install installed instead issue issues last
latest line lines linux log logs macos main message minimal most new note occur occurs old open operating output pip
possible print problem process python query question readme release report reproduce reproducer reproducible reproducing
request result results return returned returns run running screenshot script search self similar simple snippet
solution step steps support system terminal test tests thank thanks title traceback true false none try tried trying
type ubuntu update updated user users value values version versions windows work working works wrong call def class
recent most site packages package lib usr bin home documentation documented docs pypi bump related
"""

STOP_WORDS = frozenset((_ENGLISH + _ISSUES).split())
