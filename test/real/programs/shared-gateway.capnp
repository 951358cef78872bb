using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "worker", worker = .worker),
    # All of its requests stay on this machine.
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "worker")],
);

const worker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "shared-gateway.bundle.js")],
  compatibilityDate = "2026-10-01",
);
