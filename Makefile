# One word for everything that is done with this project; the work is in scripts/.

.PHONY: help demo test test-core lint install psql bench lab clean

help: ## list these
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: ## watch VACUUM's page skipping on a throwaway server: maps, plans, timings
	@scripts/demo.sh

test: ## run every test: unit, in-server, SQL regression, black-box
	@scripts/test.sh

test-core: ## run PostgreSQL's own tests with the extension in use: make test-core ARGS="create_index vacuum"
	@scripts/test-core.sh $(ARGS)

lint: ## check format, clippy, documentation and shell scripts
	@scripts/lint.sh

install: ## install into your PostgreSQL 18: make install PG_CONFIG=/path/to/pg_config
	@scripts/install.sh

psql: ## open psql on a throwaway server that has the extension
	@scripts/psql.sh

bench: ## time VACUUM and the functions against what PostgreSQL has: make bench ARGS="..."
	@scripts/bench.sh $(ARGS)

lab: ## repeat the study on your storage, with a report: make lab DIR=/mnt/nvme/lab ARGS="..."
	@LAB_DIR='$(DIR)' scripts/lab.sh $(ARGS)

clean: ## remove what the build and the set-up made in this folder
	rm -rf target .tools pg_test/results
