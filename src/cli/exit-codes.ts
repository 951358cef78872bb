/** The exit codes of the command, as `rivulet --help` and docs/reference/command.md list them. */
export const EXIT = {
  done: { code: 0, meaning: 'success; for serve, dashboard and mcp also: stopped by Ctrl-C or SIGTERM' },
  failed: {
    code: 1,
    meaning:
      'failure; for run and find-all: it did not complete; for rules check and rules test: there are problems',
  },
  usage: { code: 2, meaning: 'the command line, the environment or the version of Node is not valid' },
  authentication: { code: 3, meaning: 'the service refused the API key' },
  notFound: {
    code: 4,
    meaning: 'the service does not have what was named, such as a monitor or a task group',
  },
  unreachable: { code: 5, meaning: 'the service, or the server of the log, cannot be reached' },
  logInUse: {
    code: 6,
    meaning: 'another process records the same, runs the same rules, or uses the log that is to be copied',
  },
  log: {
    code: 7,
    meaning:
      'the log cannot be used: missing, damaged, of another version, not writable, or refused by its server',
  },
  interrupted: { code: 130, meaning: 'interrupted by Ctrl-C' },
  terminated: { code: 143, meaning: 'ended by SIGTERM' },
} as const
