import { parseSync, Visitor } from 'rolldown/utils'

/** A type that a file declares. */
export interface TypeName {
  /** Path from the root of the repository. */
  readonly file: string
  readonly name: string
}

/** The interfaces, type aliases, classes and enums of a file, at any depth. Type parameters do not count. */
export function typeNamesOf(file: string, text: string): TypeName[] {
  const { program, errors } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file}: ${errors.map(({ message }) => message).join('; ')}`)

  const names: TypeName[] = []
  const add = ({ id }: { readonly id: { readonly name: string } | null }) => {
    if (id !== null) names.push({ file, name: id.name })
  }
  new Visitor({
    TSInterfaceDeclaration: add,
    TSTypeAliasDeclaration: add,
    TSEnumDeclaration: add,
    ClassDeclaration: add,
    ClassExpression: add,
  }).visit(program)
  return names
}
