# A static image with the command, certificates and time zones.
#
#   docker build -t qtype .
#   docker run --rm -v "$PWD:/app" -e OPENAI_API_KEY qtype validate app.qtype.yaml
#
# It has all parts. docker buildx build --platform linux/amd64,linux/arm64 compiles for both without emulation.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src
COPY go.work go.work.sum go.mod go.sum ./
COPY distribution/go.mod distribution/go.sum distribution/
RUN go mod download
COPY . .
# qtype version prints the commit, so .git must be in the build context.
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=true -tags disable_grpc_modules -ldflags "-s -w" -o /qtype ./distribution/cmd/qtype
# Memories are stored in .qtype in the working folder, so the user must own it.
RUN mkdir -p /empty/app /empty/tmp && chmod 1777 /empty/tmp && chown 65532:65532 /empty/app

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /zoneinfo.zip
COPY --from=build --chown=65532:65532 /empty/app /app
COPY --from=build /empty/tmp /tmp
COPY --from=build /qtype /qtype
ENV ZONEINFO=/zoneinfo.zip
USER 65532:65532
WORKDIR /app
ENTRYPOINT ["/qtype"]
CMD ["help"]
