# gpu-scheduler: built on Debian 12; the images hold the binaries, the libraries that they load, and
# nothing else: no shell, no package manager, nothing that can be written to.
#   docker build -t gpu-scheduler:latest .                  every subcommand; `serve` by default
#   docker build --target webhook -t gpu-scheduler-webhook:latest .
#   docker build --target agent -t gpu-scheduler-agent:latest .
#   docker run --read-only -v state:/var/lib/gpu-scheduler -v ./secrets:/run/secrets:ro -p 8080:8080 \
#     -e GPU_SCHEDULER_API_BIND=0.0.0.0 -e GPU_SCHEDULER_AUTH_API_KEYS_FILE=/run/secrets/api_keys gpu-scheduler
# scripts/build-images.sh builds all of them, with --prebuilt from binaries that are there already.
FROM docker.io/library/debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends make python3 ca-certificates \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY scripts/setup.sh scripts/setup.sh
RUN apt-get update && scripts/setup.sh --build-only && rm -rf /var/lib/apt/lists/*
COPY . .
RUN scripts/build.sh release gpu-scheduler && scripts/build.sh release gpu-cli

FROM docker.io/library/debian:12 AS files
# libpq5 is loaded where PostgreSQL is configured; binutils only strips.
RUN apt-get update && apt-get install -y --no-install-recommends libpq5 ca-certificates binutils \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/release/gpu-scheduler /src/build/release/gpu-cli /binaries/
COPY scripts/image-files.sh /
COPY config/scheduler-config.yaml /config/
RUN /image-files.sh /binaries /config /image

FROM scratch AS image
COPY --from=files /image/ /
ENV PATH=/usr/local/bin
USER 10001:10001
VOLUME /var/lib/gpu-scheduler
ENTRYPOINT ["gpu-scheduler"]

FROM image AS webhook
EXPOSE 8443 8081
CMD ["webhook", "--bind", "0.0.0.0", "--self-signed"]

FROM image AS agent
EXPOSE 8082
CMD ["agent", "--kube", "--bind", "0.0.0.0"]

FROM image AS scheduler
EXPOSE 8080 9090 9091
CMD ["serve", "--state-dir", "/var/lib/gpu-scheduler", "--set", "agent.local=off"]
