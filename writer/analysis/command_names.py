"""Names in command lines that are no data of a run: programs, subcommands, and files and words of any project."""

PROGRAMS = frozenset(
    """
    7z ab ack ag alembic ansible ansible-playbook ant apk apt apt-cache apt-get ar arch as autoconf automake awk aws az
    b2sum base64 basename bash bazel black brew bun bundle bunx bzip2 cabal cargo casebank cat cc cd celery chmod chown
    clang clang++ clang-format clippy-driver cmake column command composer conda coverage cp cpio crontab csc ctest curl
    cut cython date dd deno df diff dig django-admin dmesg dnf docker docker-compose dotnet dpkg du echo env eslint exec
    expect export fastapi fd ffmpeg file find fish flake8 flask fold free g++ gawk gcc gcloud gdb gem gh ghc git gmake
    gn go gofmt gofumpt golangci-lint gpg gradle gradlew grep groups gsutil gunicorn gunzip gzip hatch head helm
    hexdump host hostname htop http iconv id ifconfig initdb install ip ipython isort java javac jar jest jobs join
    journalctl jq jshell julia jupyter just kill kotlinc kubectl latexmk ld ldconfig ldd less ln locate logger ls lsof
    lua make man mariadb md5sum meson minikube mkdir mkfifo mocha mongo mongosh more mount mv mvn mvnw mypy mysql
    mysqldump nano nc ncat netstat next nginx ninja nl nm node nohup nox npm npx nslookup nvim objdump od openssl
    pandoc paste patch pdflatex perl pg_ctl pg_dump pg_isready pg_restore pgrep php phpunit ping pip pip-compile pipenv
    pipx pkill pnpm podman poetry pre-commit prettier printenv printf prisma protoc ps psql pushd pwd py pylint pyright
    pytest python pip3 python3 qmake R rails rake ray readlink realpath redis-cli rg rm rmdir rspec rsync ruby ruff
    rustc rustfmt rustup sbt scala scp screen sed seq service set sftp sh sha256sum sleep sort source split sqlite3 ss
    ssh ssh-keygen stat strace strings stdbuf stylelint su sudo svn swift systemctl tac tail tar tee telnet terraform
    test tig time timeout tmux top touch tox tr traceroute tree truncate ts-node tsc tsx twine type uname uniq unittest
    unxz unzip uv uvicorn uvx valgrind vi vim vite vitest vue wait watch wc webpack wget which who whoami xargs xxd xz
    yapf yarn yq yum zcat zip zipfile zsh zstd
""".split()
)
INTERPRETERS = frozenset("python python3 bash sh zsh node ruby perl php bun deno".split())
WRAPPERS = frozenset("sudo time timeout nice nohup env exec command stdbuf npx bunx uvx xvfb-run".split())
"""Programs that run another program."""
SUBCOMMANDS = frozenset(
    """
    alembic ansible apk apt apt-get aws az brew bun bundle cargo casebank composer conda coverage deno django-admin dnf
    docker docker-compose dotnet flask gcloud gem gh git go gradle hatch helm jupyter kubectl mvn npm pip pip3 pipenv
    pipx pnpm podman poetry pre-commit prisma rails ruff rustup service svn swift systemctl terraform uv yarn yum
""".split()
)
"""Programs whose first operand is a subcommand."""
NESTED = frozenset(
    tuple(pair.split())
    for pair in """
    git remote/git stash/git submodule/git worktree/git bisect/git notes/docker compose/docker container/docker image
    docker volume/docker network/docker system/go mod/uv pip/uv tool/gh pr/gh issue/gh repo/gh run/npm config/pip config
    kubectl get/kubectl describe/kubectl delete/kubectl create/aws s3/cargo nextest/conda env/ruff config
""".replace("\n", "/").split("/")
    if pair.strip()
)
"""Subcommands with a subcommand of their own."""
INSTALLS = frozenset(
    """
    add install i uninstall remove download show get require update upgrade
""".split()
)
"""Subcommands whose operands are packages."""
PACKAGE_MANAGERS = frozenset(
    """
    apk apt apt-get brew bun cargo composer conda dnf gem go npm pip pip3 pipenv pipx pnpm poetry uv yarn yum
""".split()
)
SINGLE_DASH = frozenset(
    """
    -name -iname -type -path -exec -execdir -delete -print -print0 -prune -maxdepth -mindepth -newer -mtime -size
    -regex
    -version -classpath -jar -run -bench -race -cover -count -timeout -tags -Wall -Wextra -Werror -pthread -fPIC
    -shared
    -static -march -std -not -perm -xdev -empty -source -target -release -encoding -Xmx -Xms -nodes -newkey -days
    -keyout
    -out -subj -noout -text -check -destroy -auto-approve -input -upgrade -pedantic
""".split()
)
"""Long flags with one dash."""
SECRET_FLAGS = frozenset("--password --passwd --token --secret --api-key --apikey --auth --auth-token --key".split())
BUILDING = frozenset("ant cmake gradle gradlew java javac mvn mvnw sbt".split())
"""Programs whose flags -D and -P set a property, and whose other words name tasks, profiles and classes."""
LINKING = frozenset("gcc g++ cc clang clang++ ld".split())
SAFE_WORDS = frozenset(
    """
    admin all amd64 any api app apps arm64 assets auto backend base bash bin build cache certs ci clean client cmake
    common conf conftest config configs configure core css current data database db debug default deploy dev develop
    development discover dist doc docs down env etc example examples false features fix fixtures format frontend
    generate
    group
    handlers head headers helpers home html http images include index init input install integration internal js json
    latest lib libs lint linux local localhost log logs main manage master migrate migrations mock mod models module
    modules node node_modules none null off on opt origin out output package packages pkg plugins pods prod production
    public py release remote requirements resources root routes run schema schemas script scripts serve server service
    services settings setup shared site-packages source spec src staging start static status stop storage style styles
    sys system target temp template templates test testdata testing tests text tmp tool tools true types unit up
    upstream usr util utils var vendor venv version views web workspace wsgi x86_64 xml yes zsh
    Cargo Dockerfile Gemfile HEAD LICENSE Makefile Pipfile README Rakefile CMakeLists Main Test FETCH_HEAD
    .bashrc .dockerignore .env .git .github .gitignore .pre-commit-config .bin .venv .cache pyproject package
    package-lock
    poetry docker-compose compose tsconfig go tox mypy pytest ruff alembic gradlew mvnw pom build-essential vitest jest
""".split()
)
"""Names of branches, targets, folders and files that occur in any project."""
MODULES = frozenset(
    """
    pytest pip venv http.server json.tool unittest mypy ruff build zipfile tarfile black isort coverage uvicorn flask
    django compileall ensurepip timeit cProfile pdb doctest twine gunicorn celery alembic pylint flake8 ipykernel
    jupyter virtualenv site sysconfig py_compile webbrowser smtpd pydoc setuptools wheel nltk spacy casebank tox nox
    pre_commit pyflakes pycodestyle streamlit hypercorn torch.distributed.run accelerate.commands.launch
""".split()
)
"""Python modules that are run with -m."""
EXTENSIONS = frozenset(
    """
    bat bz2 c cc cfg cjs class conf cpp cs css csv cts db deb env exe gif go gz h hpp html in ini ipynb jar java jpg js
    json json5 jsonl jsx key kt lock log lua md mjs mk mts o parquet patch pdf pem php pl png proto py pyc pyi R rb rpm
    rs rst rules sass scala scss service sh so spec sql sqlite svg swift tar tex tf tgz toml ts tsv tsx txt vue war wasm
    whl xml xz yaml yml zip zst
""".split()
)
FILTERS = frozenset("awk column cut grep head less more sed sort tail tee tr uniq wc xargs".split())
"""Programs that, after a pipe, only filter or shorten the output of the command before them."""
READERS = frozenset(
    """
    awk cat column cut diff dig env file find free git-log grep head hexdump id journalctl less ls man more nl od pwd
    printenv ps rg sort stat strings tac tail tree type uname uniq wc which who whoami xxd zcat date df du ag ack
""".split()
)
"""Programs that show files or state and change nothing."""
TRIVIAL = frozenset(". : cd clear echo export popd printf pushd pwd set sleep source test true type unset".split())
"""Commands that prepare others or print a text, and are never the goal of a line."""
FAMILIES = tuple(
    frozenset(names.split())
    for names in (
        "wget curl", "netstat ss lsof", "ifconfig ip hostname", "rg grep ag ack", "fd find locate tree",
        "unzip zipfile tar 7z gunzip", "jq yq", "apt apt-get yum dnf apk brew", "npm yarn pnpm bun",
        "xxd hexdump od", "service systemctl", "docker podman", "md5sum sha256sum openssl", "make gmake ninja",
        "rm rmdir", "vi vim nano", "nslookup dig host", "pytest unittest", "pip uv pipx conda poetry",
        "mvn mvnw", "gradle gradlew", "cc gcc clang", "less more cat", "mysql mariadb",
    )
)  # fmt: skip
"""Groups of programs with the same purpose."""
SUB_FAMILIES = tuple(
    frozenset(names.split(","))
    for names in (
        "checkout,switch,restore,branch", "remote add,remote set-url", "ci,install,i,add", "test,run", "get,install",
        "pip install,add,install,sync", "merge,pull,rebase", "up,compose up", "rm,restore,reset",
    )
)  # fmt: skip
"""Groups of subcommands with the same purpose."""
DATABASES = frozenset("duckdb mariadb mysql psql sqlite3".split())
"""Database clients, whose quoted words may be SQL."""
JQ_WORDS = frozenset(
    """
    length keys map select sort_by group_by to_entries from_entries with_entries test contains tostring tonumber has
    first last add unique not and or if then else end null true false empty any all join split type values flatten
""".split()
)
