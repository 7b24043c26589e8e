"""The golden cases: stories of a few commands each, on the inputs of `inputs.py`.

The commands of a story run one after another in one folder, whose `in/` holds the inputs. What is
going to leave the package is not told here, so that these protect what stays.
"""

from __future__ import annotations

ALONE = "--engine here --workers 1 --device cpu"
TRAIN = "--steps 60 --evaluate-every 20 --learning-rate 0.02 --batch-size 8"
QUICK = (
    "--steps 5 --subsets 8 --held-out 4 --alone 2 --size 2 --prefixes 1 --batch-size 8 "
    f"--learning-rate 0.02 {ALONE}"
)
SWARM = (
    "--members 6 --layers 1 --width 16 --context 16 --batch-size 4 --tokens 1280 --dev-bytes 200 "
    "--replicates 1 --workers 1 --device cpu"
)
MIX = "mix in/ratios.csv in/metrics.csv"
LAWS = "laws in/results.csv --explain f1 --inputs n"
LETTERS = "sequences in/letters.csv --characters --generators 2 --restarts 1 --iterations 20"
FRAMES = (
    "sequences in/frames.csv --generators 2 --restarts 1 --iterations 10 --no-baselines "
    "--no-calibrate --states 2"
)

FILES = " ".join(
    f"--path {task}=in/texts/fruit/train.jsonl" for task in ("card", "loan", "fraud", "noise")
)

STORIES: dict[str, tuple[str, ...]] = {
    "check": (
        "check in/tables",
        "check in/texts --only fruit",
        "check in/messy.csv --task-column shop --label label",
        "check in/messy.csv --task-column shop --label label --ignore id --ignore told",
        "check in/results.csv --label f1 --kind regression --ignore net",
    ),
    "check_refuses": (
        "check in/nowhere",
        "check in/empty.csv",
        "check in/messy.csv --label price",
        "check in/tables --only card,cash",
        "check in/texts --metric loudness",
    ),
    "train_policies": (
        f"train in/tables --only card,loan --seeds 2 --policy tempered:2 {TRAIN} {ALONE}",
        f"train in/tables --only card,loan --policy exp3 {TRAIN} {ALONE}",
        f"train in/tables --only card,loan --policy exp3s:eta=0.1 --reward gain {TRAIN} {ALONE}",
        f"train in/tables --only card,loan --policy fixed:0.3,0.7 {TRAIN} {ALONE}",
        f"train in/tables --only card,loan --single {TRAIN} {ALONE}",
        "report study",
    ),
    "train_weightings": tuple(
        f"train in/tables --only card,fraud --weighting {word} --out weighted {TRAIN} {ALONE}"
        for word in ("equal", "uncertainty", "dwa", "pcgrad", "nash", "bandit:radius=1,step_size=0.1")
    ),
    "train_texts": (
        f"train in/texts --keep model --optimizer adamw --schedule cosine --warmup 0.1 {TRAIN} {ALONE}",
        "predict model in/texts/fruit/test.jsonl --task fruit --answers answers.csv",
        f"train in/texts --model bilstm --steps 6 --out bilstm {ALONE}",
    ),
    "train_fleet": (
        f"train in/tables --seeds 2 {TRAIN} --engine fleet --workers 1 --device cpu",
    ),
    "train_regression": (
        "train in/results.csv --label f1 --kind regression --ignore net --task-column net "
        f"--keep model {TRAIN} {ALONE}",
        "predict model in/results.csv --task-column net",
    ),
    "train_refuses": (
        f"train in/tables --policy greedy {ALONE}",
        f"train in/tables --policy fixed:1,2 {ALONE}",
        f"train in/tables --weighting nash:radius {ALONE}",
        f"train in/tables --model nowhere/model {ALONE}",
        f"train in/tables --plan in/not_a_plan.json {ALONE}",
        "predict study in/messy.csv",
        "report study",
        "improve study",
    ),
    "improve": (
        f"train in/tables --policy uniform --seeds 3 {TRAIN} {ALONE}",
        "improve study --division curves --write-plan curves_plan.json",
        "improve study --entropy 0.2 --fixed --write-plan plan.json",
        "plan show in/plan.json",
        "plan check in/plan.json in/tables",
        "plan check in/plan.json in/texts",
        f"train in/tables --plan in/plan.json --out planned {TRAIN} {ALONE}",
        "plan export in/plan.json --to datasets --out weights",
        f"plan export in/plan.json --to llamafactory {FILES} --out llama",
        f"plan export in/plan.json --to axolotl {FILES} --out axolotl.yaml",
        f"plan export in/plan.json --to megatron {FILES} --out blend",
        "plan export in/plan.json --to trl --data data --out trl.yaml",
        "plan export in/plan.json --to nothing --out nothing",
    ),
    "transfer_one": (
        f"transfer in/tables --target card {QUICK} --write-plan plan.json",
        "report study",
        "plan show plan.json",
    ),
    "transfer_all": (
        f"transfer in/tables --all --shrink --outcome metric {QUICK}",
        f"transfer in/tables --target cash {QUICK}",
        f"transfer in/tables {QUICK} --out other",
    ),
    "advise": (
        "advise in/tables --only card,fraud,noise --budget 800-steps --steps 30 "
        f"--learning-rate 0.02 --batch-size 8 --out advice {ALONE}",
        "report advice",
        "plan show advice/plan.json",
        f"train in/tables --plan advice/plan.json --out trained {TRAIN} {ALONE}",
        "report advice --delivered trained",
        "predict advice in/tables/card/test.csv --task card",
    ),
    "advise_target": (
        "advise in/tables --target card --budget 700-steps --steps 20 --learning-rate 0.02 "
        f"--batch-size 8 --out advice {ALONE}",
        f"advise in/texts --target nuts --budget 900-steps --out other {ALONE}",
        f"advise in/texts --budget soon --out other {ALONE}",
    ),
    "simulate": (
        "laws simulate in/texts --real fruit --count 2 --alpha 0.6,0.9 --samples 30 --out related",
        "laws simulate in/texts --count 2 --out none",
    ),
    "laws": (
        f"{LAWS} --formula 0.03*sqrt(n) --at n=50 --to n=500 --document laws.json --page laws.html",
        f"{LAWS} --group net --folds 4 --bootstrap 20 --increasing n --bounded",
        f"{LAWS} --at T=50",
        "laws in/results.csv --explain f2 --inputs n",
        "laws in/results.csv --explain f1 --inputs net",
    ),
    "mix": (
        f"{MIX} --at-most code=0.3 --next 2 --predict in/asked.csv --write-plan plan.json "
        "--page mix.html --document mix.json",
        f"{MIX} --target logic --supply web=1B,code=1M,books=1B --budget 10B --front prose,logic",
        "plan show plan.json",
        "mix in/sizes.csv --metrics-columns prose --changes in/changes.toml --size-column size "
        "--parameters 1B",
        f"{MIX} --target physics",
        f"{MIX} --at-least web=0.7,code=0.7",
        "mix in/ratios.csv in/results.csv",
    ),
    "demo": ("demo --budget 600-steps --workers 1 --out demo",),
    "swarm": (
        f"swarm in/domains {SWARM} --engine fleet",
        f"swarm in/domains {SWARM} --engine fleet --only vowels",
    ),
    "sequences_markov": (
        f"{LETTERS} --generator markov --out found",
        "sequences score found in/letters.csv --out scores.csv",
        "sequences next found ae --task task1",
        "sequences sample found --task task0 --number 4 --length 6",
        "sequences adapt found in/new.txt --task fresh --out with_fresh.safetensors",
        "sequences next found zz --task task9",
        "sequences nowhere.csv",
    ),
    "sequences_kinds": (
        f"{LETTERS} --generator multinomial --out lda --no-baselines",
        f"{LETTERS} --generator hmm --states 2 --out hmm --no-baselines",
        f"{LETTERS} --generator gru --hidden 4 --out gru --no-baselines --no-calibrate --no-own",
        f"{FRAMES} --generator gaussian --out gaussian",
        f"{FRAMES} --generator lds --out lds",
    ),
}  # fmt: skip
