/** Maximum length of a URL, in characters. */
const MAX_URL_LENGTH = 2_048

/** An absolute http or https URL without a fragment; undefined for anything else, and for one with credentials. */
export function webUrl(text: string | undefined, base: string): string | undefined {
  const link = text?.trim() ?? ''
  if (link === '' || link.length > MAX_URL_LENGTH || !URL.canParse(link, base)) return undefined
  const url = new URL(link, base)
  if (!/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') return undefined
  url.hash = ''
  return url.href.length > MAX_URL_LENGTH ? undefined : url.href
}
