"""Jobs as objects: what a SlurmJob asks for as a submission to slurmrestd, and what Slurm says as its state.

==================  ============================================================================
module              concern
==================  ============================================================================
`translation`       a spec as one `JobSpec`: its script, its fields as options, and which ``#SBATCH`` lines lose
`parameters`        the rest of sbatch by slurmrestd's names: what is taken, and why not
`images`            images as scripts that run them
`task_sets`         tasks of an array: those that a spec asks for, and as Slurm names them
`external`          jobs without a script: what of a spec means nothing to them
`environment`       the variables that sbatch would have sent
`annotated_fields`  fields of a spec that pods ask for by annotations
`quantities`        quantities of Kubernetes as whole numbers of Slurm
`options`           options of sbatch, each with the field that asks for it
`refusal`           the one error
`tenants`           who may submit as whom, and to what
`phases`            states of Slurm as phase, reason and words of a job object
`parameter_values`  values of slurmrestd's fields as values of sbatch's options
==================  ============================================================================

All of it is pure; the controllers are `slinky_operator.slurmjob` and `slinky_operator.sylabs`. ``#SBATCH`` lines are
read by `slurm_client.notation.sbatch`.
"""
