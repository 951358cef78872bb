/** Whether the host of a URL is this machine. Checks the name only: a name of another server does not count. */
export function isLoopback(hostname: string): boolean {
  return /^(127\.\d+\.\d+\.\d+|\[::1\]|(.+\.)?localhost)$/.test(hostname)
}
