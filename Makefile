# The front door. `make` lists what there is.

SHARED ?= ../shared
FUZZ_SECONDS ?= 60
SECONDS_EACH ?= 5
SEEDS ?=
STEPS ?=
JOBS ?= $(shell nproc)
CHANGED ?=
FILES ?=
ARGS ?= --help

export SHARED SEEDS STEPS JOBS
RELEASE := build/release
LINT := python3 scripts/lint.py
TEST := python3 scripts/test.py

.DEFAULT_GOAL := help
.PHONY: help setup setup-build build demo demo-stop demo-sim test lint fmt bench bench-submit bench-scale bench-kube \
        asan tsan fuzz sim clean debug release \
        test-layers test-lint test-unit test-scenarios test-integration test-kube test-kube-oldest kube-tools \
        test-yardsticks test-asan test-tsan asan-integration tsan-integration asan-kube tsan-kube \
        docker docker-webhook docker-agent docker-build deploy deploy-manifests helm-lint

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z -]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: ## Install the Debian packages that are missing (asks for nothing)
	@scripts/setup.sh

setup-build:
	@scripts/setup.sh --build-only

build release: setup-build ## Build build/release/gpu-scheduler and build/release/gpu-cli, with tests and benchmarks
	@scripts/build.sh release

debug: setup ## Build everything without optimisation, in build/debug
	@scripts/build.sh debug

demo: setup-build ## Start the scheduler on this machine, with a tenant and jobs that run, and show it
	@scripts/build.sh release gpu-scheduler
	@scripts/build.sh release gpu-cli
	@scripts/demo.sh

demo-stop: ## Stop what `make demo` has started
	@scripts/demo.sh stop

demo-sim: setup-build ## Show a small simulated cluster: jobs, placements, and why jobs wait
	@scripts/build.sh release gpu-scheduler
	@$(RELEASE)/gpu-scheduler sim demo

sim: setup ## Run the simulator: make sim ARGS="run tests/scenarios"
	@scripts/build.sh release gpu-scheduler
	@$(RELEASE)/gpu-scheduler sim $(ARGS)

test: setup ## Run every check; ends with `N passed, N failed`
	@$(TEST)

test-layers: setup ## Only: includes follow layers.txt
	@$(TEST) layers

test-lint: setup ## Only: formatting and the project's own lint rules
	@$(TEST) lint

test-unit: setup ## Only: the unit tests, in release
	@$(TEST) unit

test-scenarios: setup ## Only: tests/scenarios through the simulator
	@$(TEST) scenarios

test-integration: setup ## Only: the binaries as users run them, against a server with simulated GPUs
	@$(TEST) integration

test-kube: setup ## Only: the Kubernetes side, on a real control plane that the tests start
	@$(TEST) kube

test-kube-oldest: setup ## The same on the oldest Kubernetes that is supported, 1.31
	@KUBE_VERSION=1.31.0 $(TEST) kube

kube-tools: setup ## Build the programs of that control plane into a cache (KUBE_VERSION=1.31.0 for the oldest)
	@python3 scripts/kube_toolchain.py

test-yardsticks: setup ## Only: conformance suites, traces and faults (data from SHARED=../shared)
	@$(TEST) yardsticks

test-asan: setup
	@$(TEST) asan

test-tsan: setup
	@$(TEST) tsan

asan-integration: setup ## The integration tests with programs under AddressSanitizer
	@$(TEST) asan_integration

tsan-integration: setup ## The integration tests with programs under ThreadSanitizer
	@$(TEST) tsan_integration

asan-kube: setup ## The tests on a real control plane with programs under AddressSanitizer
	@$(TEST) asan_kube

tsan-kube: setup ## The tests on a real control plane with programs under ThreadSanitizer
	@$(TEST) tsan_kube

asan: test-asan ## Unit tests and scenarios under AddressSanitizer and UBSan

tsan: test-tsan ## Unit tests and scenarios under ThreadSanitizer

lint: setup ## Formatting, layers, lint rules, clang-tidy; CHANGED=1 or FILES="..." for a part
	@python3 scripts/check_layers.py
	@$(LINT) --rules --format --tidy $(if $(CHANGED),--changed) $(FILES)

fmt: setup ## Format the C++ sources in place
	@$(LINT) --fix-format $(if $(CHANGED),--changed) $(FILES)

bench: setup ## Run the benchmarks; tables here, rows in build/bench/*.json
	@scripts/build.sh release
	@scripts/bench.sh $(RELEASE)/bench build/bench

bench-submit: setup ## Durable submissions over HTTP beside the bare limit; rows in build/bench/submit.json
	@scripts/build.sh release gpu-scheduler
	@scripts/build.sh release bench_submit
	@mkdir -p build/bench
	@BENCH_JSON=build/bench/submit.json $(RELEASE)/bench/submit $(RELEASE)/gpu-scheduler $(SECONDS_EACH) --slurm

bench-scale: setup ## Submissions beside 10,000 watchers; starts and lists with a million jobs of history
	@scripts/build.sh release gpu-scheduler
	@scripts/build.sh release bench_streams
	@scripts/build.sh release bench_history
	@mkdir -p build/bench
	@BENCH_JSON=build/bench/streams.json $(RELEASE)/bench/streams $(RELEASE)/gpu-scheduler $(SECONDS_EACH)
	@BENCH_JSON=build/bench/history.json $(RELEASE)/bench/history $(RELEASE)/gpu-scheduler

bench-kube: setup ## Pods bound a second on a real control plane: ours, kube-scheduler, the bare limits; rows in build/bench/kube.json
	@scripts/build.sh release gpu-scheduler
	@python3 bench/kube/bound_rate.py

fuzz: setup ## Run each fuzz target for FUZZ_SECONDS (60)
	@scripts/build.sh fuzz
	@scripts/fuzz.sh build/fuzz/fuzz $(FUZZ_SECONDS)

docker: ## Build the image gpu-scheduler:latest (docker or podman); PREBUILT=1 takes build/release as it is
	@scripts/build-images.sh $(if $(PREBUILT),--prebuilt) scheduler

docker-webhook: ## Build the image gpu-scheduler-webhook:latest
	@scripts/build-images.sh $(if $(PREBUILT),--prebuilt) webhook

docker-agent: ## Build the image gpu-scheduler-agent:latest
	@scripts/build-images.sh $(if $(PREBUILT),--prebuilt) agent

docker-build: ## Build all images, that of the check service too
	@scripts/build-images.sh $(if $(PREBUILT),--prebuilt)

deploy: ## Install deploy/ into the cluster that kubectl speaks to
	@scripts/deploy.sh

helm-lint: kube-tools ## Lint the charts
	@PATH="$$(python3 scripts/kube_toolchain.py --print-path):$$PATH" helm lint --strict charts/gpu-scheduler charts/gpu-scheduler-check

deploy-manifests: kube-tools ## Render deploy/ from the chart, with the resource definitions of api/crds
	@PATH="$$(python3 scripts/kube_toolchain.py --print-path):$$PATH" scripts/render-deploy.sh

clean: ## Remove build/
	rm -rf build
