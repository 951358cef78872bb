/** Some methods in front of those of another object. The others are called on that object, which may have private fields. */
export function inFrontOf<Target extends object>(target: Target, own: Partial<Target>): Target {
  return new Proxy(target, {
    get(_, name) {
      const member: unknown = Object.hasOwn(own, name) ? Reflect.get(own, name) : Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
