# The hookbus command, for the bus and the observers in docker-compose.yml.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package hookbus-cli

FROM debian:bookworm-slim
# Certificates for webhooks and NATS over TLS.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --create-home --home-dir /var/lib/hookbus hookbus
COPY --from=build /src/target/release/hookbus /usr/local/bin/hookbus
USER hookbus
ENV HOOKBUS_HOME=/var/lib/hookbus
WORKDIR /var/lib/hookbus
VOLUME /var/lib/hookbus
ENTRYPOINT ["hookbus"]
CMD ["serve"]
