# A daemon in a container. docs/install.md has the commands that run it and connect agents to it. Run it with --init,
# because the daemon doesn't reap the processes of `docker exec`.
FROM python:3.13-slim
COPY . /src
RUN pip install --no-cache-dir '/src[mcp]' && rm -r /src && \
    useradd --create-home --uid 1000 punch && install -d -o punch -g punch -m 700 /data /run/punch
USER 1000
ENV PUNCHLIST_DATA_DIR=/data XDG_RUNTIME_DIR=/run/punch
VOLUME /data
CMD ["punchlistd"]
