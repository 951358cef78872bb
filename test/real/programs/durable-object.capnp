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
  modules = [(name = "worker", esModule = embed "durable-object.bundle.js")],
  compatibilityDate = "2026-10-01",
  durableObjectNamespaces = [(className = "Live", uniqueKey = "live")],
  durableObjectStorage = (inMemory = void),
  bindings = [
    (name = "LIVE", durableObjectNamespace = "Live"),
    (name = "BASE_URL", fromEnvironment = "BASE_URL"),
    (name = "API_KEY", fromEnvironment = "API_KEY"),
    (name = "GROUP", fromEnvironment = "GROUP"),
    (name = "LIVE_SECRET", fromEnvironment = "SECRET"),
  ],
);
