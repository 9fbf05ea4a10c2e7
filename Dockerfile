# gpu-scheduler: built on Debian 12, run from an image that holds the binaries and nothing else that
# can be written to.
#   podman build -t gpu-scheduler .
#   podman run --read-only -v state:/var/lib/gpu-scheduler -p 8080:8080 gpu-scheduler
FROM docker.io/library/debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends make python3 ca-certificates \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY scripts/setup.sh scripts/setup.sh
RUN apt-get update && scripts/setup.sh --build-only && rm -rf /var/lib/apt/lists/*
COPY . .
RUN scripts/build.sh release gpu-scheduler && scripts/build.sh release gpu-cli \
    && strip build/release/gpu-scheduler build/release/gpu-cli

FROM docker.io/library/debian:12
# libpq5 is loaded when PostgreSQL is configured.
RUN apt-get update && apt-get install -y --no-install-recommends libpq5 ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/gpu-scheduler --create-home scheduler
COPY --from=build /src/build/release/gpu-scheduler /src/build/release/gpu-cli /usr/local/bin/
COPY config/scheduler-config.yaml /etc/gpu-scheduler/scheduler-config.yaml
USER scheduler
VOLUME /var/lib/gpu-scheduler
EXPOSE 8080 9090 9091
ENTRYPOINT ["gpu-scheduler"]
CMD ["serve", "--state-dir", "/var/lib/gpu-scheduler", "--set", "agent.local=off"]
