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
  modules = [(name = "worker", esModule = embed "worker.bundle.js")],
  compatibilityDate = "2026-10-01",
  bindings = [
    (name = "RIVULET_BASE_URL", fromEnvironment = "RIVULET_BASE_URL"),
    (name = "RIVULET_API_KEY", fromEnvironment = "RIVULET_API_KEY"),
    (name = "RIVULET_WEBHOOK_SECRET", fromEnvironment = "RIVULET_WEBHOOK_SECRET"),
  ],
);
