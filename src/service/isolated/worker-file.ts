/** The file of the isolated thread: beside this one in the sources, and below the bundled service in the package. */
export const WORKER_FILE = new URL(
  import.meta.url.endsWith('.ts') ? './worker.ts' : './isolated/worker.js',
  import.meta.url,
)
