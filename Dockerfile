# The hookbus command, for the bus and the observers in docker-compose.yml.
#
#   docker build --tag hookbus .                          without Python
#   docker build --tag hookbus:python --target python .   for hooks and plugins in Python

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
# The dependencies have a layer of their own: it is built again only when a manifest changes.
COPY Cargo.toml Cargo.lock ./
COPY bus/Cargo.toml bus/
COPY subscribers/Cargo.toml subscribers/
COPY replay/Cargo.toml replay/
COPY cli/Cargo.toml cli/
COPY tests/Cargo.toml tests/
RUN mkdir bus/src subscribers/src replay/src cli/src tests/src tests/bench \
 && touch bus/src/lib.rs subscribers/src/lib.rs replay/src/lib.rs tests/src/lib.rs \
 && echo 'fn main() {}' | tee cli/src/main.rs cli/build.rs tests/bench/nothing.rs \
 && cargo build --release --locked --package hookbus-cli
COPY . .
# Cargo compares times, and the copied files may be older than the empty ones above.
RUN find bus subscribers replay cli -name '*.rs' -exec touch {} + \
 && cargo build --release --locked --package hookbus-cli

FROM debian:bookworm-slim AS runtime
# Certificates for webhooks and NATS over TLS. The policy may be mounted as a directory at /etc/hookbus: a new
# volume for the home gets this link to it.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --create-home --home-dir /var/lib/hookbus hookbus \
 && mkdir /etc/hookbus \
 && ln -s /etc/hookbus/hookbus.yaml /var/lib/hookbus/hookbus.yaml
COPY --from=build /src/target/release/hookbus /usr/local/bin/hookbus
USER hookbus
ENV HOOKBUS_HOME=/var/lib/hookbus
WORKDIR /var/lib/hookbus
VOLUME /var/lib/hookbus
ENTRYPOINT ["hookbus"]
CMD ["serve"]

FROM runtime AS python
USER root
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/*
USER hookbus

# The last one is built if no target is named.
FROM runtime
