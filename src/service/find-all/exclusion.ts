import type { FindAllRequest } from '../../protocol/find-all.ts'

/** The test whether a candidate is in the exclude list: by its name, or by the URL of one of its documents. */
export function exclusionOf({
  exclude_list: list = [],
}: FindAllRequest): (name: string, url: string) => boolean {
  const names = new Set(list.map(({ name }) => normalName(name)).filter((name) => name !== ''))
  const urls = list.map(({ url }) => normalUrl(url)).filter((url) => url !== '')
  const exact = new Set(urls)
  return (name, url) => {
    const own = normalUrl(url)
    return (
      names.has(normalName(name)) || exact.has(own) || urls.some((excluded) => own.startsWith(`${excluded}/`))
    )
  }
}

function normalName(name: string): string {
  return name.trim().toLowerCase()
}

/** A URL without its scheme, its query, its fragment and a slash at its end. */
function normalUrl(url: string): string {
  if (!URL.canParse(url)) return ''
  const { host, pathname } = new URL(url)
  return `${host.replace(/^www\./, '')}${pathname.replace(/\/+$/, '')}`
}
