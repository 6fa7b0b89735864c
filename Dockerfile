FROM node:24-slim AS install
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The image has its own Node and a real PostgreSQL beside it, so the optional packages stay out.
RUN npm ci --omit=dev --omit=optional

FROM node:24-slim
ENV NODE_ENV=production
WORKDIR /app
RUN groupadd --gid 10001 bot && useradd --uid 10001 --gid 10001 --no-create-home bot
COPY --from=install /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY bin ./bin
COPY handlers ./handlers
COPY jobs ./jobs
COPY src ./src
USER 10001:10001
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:3000/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "bin/start.mjs"]
