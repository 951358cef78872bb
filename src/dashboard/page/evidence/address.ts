/** The address if it may be a link: http and https alone, without credentials. */
export function linkAddress(url: string): string | undefined {
  const parsed = URL.parse(url)
  if (parsed === null || (parsed.protocol !== 'https:' && parsed.protocol !== 'http:')) return undefined
  if (parsed.username !== '' || parsed.password !== '') return undefined
  return parsed.href
}

/** The host of an address without `www.`, or the name of a file; the text itself for anything else. */
export function siteOf(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null) return url
  if (parsed.host !== '') return parsed.host.replace(/^www\./, '')
  return parsed.pathname.split('/').at(-1) ?? url
}
