/** The bearer token of a request, a malformed one as an empty text; undefined if it has no `Authorization`. */
export function bearerOf(request: Request): string | undefined {
  const authorization = request.headers.get('authorization')
  if (authorization === null) return undefined
  return /^bearer +([^ ,]+)$/i.exec(authorization)?.[1] ?? ''
}
