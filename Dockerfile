# One process and one volume: nothing else is ever written, so the root file system may be read-only.
# The version is the one that package.json pins for npm's scripts; a test holds the two together.
FROM node:24.21.0-trixie-slim AS base
WORKDIR /app

FROM base AS dependencies
COPY package.json package-lock.json ./
# No install script is needed: better-sqlite3 brings binaries along. Of them only this platform's is kept, and not
# the sources that the others could be built from (25 MB). npm's cache stays behind in this stage.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && \
    cd node_modules/better-sqlite3 && \
    rm -r deps src && \
    find prebuilds -type f ! -name "linux-$(node -p process.arch).node" -delete

FROM base
LABEL org.opencontainers.image.title="punctual" \
      org.opencontainers.image.description="An order-write API that answers on time, once, or not at all." \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT"
COPY package.json ./
COPY --from=dependencies /app/node_modules ./node_modules
COPY config ./config
COPY src ./src
# A new volume takes its owner from here.
RUN install -d -o 1000 -g 1000 -m 0750 /var/lib/punctual

# In production and off loopback the demo key is refused: without keys of its own (NODE_CONFIG) it exits with 78.
# The admin listener stays on the container's own loopback.
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    STORE_PATH=/var/lib/punctual/orders.db
VOLUME /var/lib/punctual
EXPOSE 8080
# `node`, by number, so that a supervisor can see that it is not root. Its files belong to root.
USER 1000:1000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 CMD ["node", "config/container/healthcheck.ts"]
ENTRYPOINT ["node", "src/main.ts"]
