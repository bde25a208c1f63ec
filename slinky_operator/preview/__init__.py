"""What a change of a Cluster would write, and the trial of it, before it is made: ``slurm-operator preview``.

It runs in a disposable pod of the operator's image, with the rights of nobody: what it needs to know is given, and what
it finds is printed. ``kubectl slurm preflight`` creates that pod, and then the trial's; so what Slurm says of a change
before it is applied comes from the rules and the pod by which the operator would try it. The running Cluster, its
status and its objects are not touched.

===============  =====================================================================
module           concern
===============  =====================================================================
`command`        the command line: bounded input, output in lines that a log can carry
`configuration`  renders a changed Cluster, and builds the trial of it
===============  =====================================================================
"""
