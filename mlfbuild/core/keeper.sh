# Read a line for each program that begins (+) or ends (-), with its number, or "-" and that of a process group.
# At the end of the input, kill those that are left, with their children.
end() {
  children=$(cat /proc/"${1#-}"/task/*/children || pgrep -P "${1#-}")
  kill -s KILL -- "$1"
  for child in $children; do end "$child"; done
}
programs=
while read -r sign program; do
  if [ "$sign" = + ]; then
    programs="$programs $program"
  else
    left=
    for each in $programs; do
      [ "$each" = "$program" ] || left="$left $each"
    done
    programs=$left
  fi
done
for program in $programs; do end "$program"; done
