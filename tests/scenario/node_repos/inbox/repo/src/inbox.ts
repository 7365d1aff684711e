export interface Mail {
  subject: string;
  tags: string[];
}

const DEFAULTS = { tags: [] as string[] };

export function mail(subject: string): Mail {
  return { subject, ...DEFAULTS };
}

export function tag(one: Mail, name: string): Mail {
  one.tags.push(name);
  return one;
}
