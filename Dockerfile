# DuckLM alone, for compose.yaml: Postgres, Qdrant and the model server are containers of their own.
FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
# bubblewrap: the sandbox of commands; git and ripgrep: what agents use most
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git ripgrep \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && rm -r /wheels \
    && useradd --create-home --uid 1000 duck \
    && install -d -o duck -g duck /data /workspace
USER duck
ENV DUCKLM_HOME=/data DUCKLM_WORKSPACE=/workspace DUCKLM_HOST=0.0.0.0 DUCKLM_PORT=8000
VOLUME ["/data", "/workspace"]
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
CMD ["ducklm", "up"]
