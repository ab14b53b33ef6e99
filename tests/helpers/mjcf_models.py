"""Small MuJoCo models: together they have every element that the reader supports."""

#: several joints on one body, joints beside the body's origin, reference positions, welded bodies,
#: ball and free joints, springs of all kinds, site actuators, gravity compensation, clamps
JOINTS = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.002" gravity="0.3 -0.2 -9.81"/>
  <worldbody>
    <site name="ground" pos="0.1 0.2 0.3" euler="0.3 0.2 0.1"/>
    <body name="base" pos="0.1 0.2 0.3" euler="0.1 0.2 0.3">
      <inertial pos="0.01 0.02 0.05" mass="1.2" fullinertia="0.02 0.03 0.025 0.001 -0.002 0.003"/>
      <joint name="lift" type="slide" axis="0.2 0.1 1" ref="0.05" stiffness="40" damping="2"
        armature="0.1" springref="0.02"/>
      <joint name="yaw" axis="0 0.3 1" pos="0.03 0.01 0.02" ref="0.2" stiffness="3 0.4 0.2"
        damping="0.1 0.02 0.03" springref="-0.3" actuatorfrcrange="-0.4 0.3"/>
      <body name="hook" pos="0.1 0 0.1" euler="0.5 0 0.2">
        <inertial pos="0 0.02 0" mass="0.4" diaginertia="0.002 0.003 0.004"/>
        <site name="tip" pos="0.05 0.01 0.02" euler="0.4 0.1 -0.2"/>
        <body name="arm" pos="0.1 0.05 0">
          <inertial pos="0.1 0 0" mass="0.5" diaginertia="0.001 0.004 0.004"/>
          <joint name="elbow" axis="0 1 0.1" pos="-0.02 0 0.01" damping="0.05" armature="0.01"/>
          <site name="hand" pos="0.2 0.01 0"/>
        </body>
      </body>
      <body name="bob" pos="-0.1 0 0" gravcomp="0.7">
        <inertial pos="0 0 -0.2" mass="0.3" diaginertia="0.003 0.003 0.001"/>
        <joint name="swing" type="ball" pos="0.01 0.02 0.03" stiffness="0.5 0.2 0.1"
          damping="0.02"/>
      </body>
    </body>
    <body name="drone" pos="0.4 0 1">
      <freejoint name="flight"/>
      <inertial pos="0.01 0 0.02" mass="0.8" diaginertia="0.004 0.005 0.006"/>
      <site name="rotor" pos="0.1 0.05 0" euler="0.1 0.2 0"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="lift" joint="lift" gear="2" ctrlrange="-0.5 0.5"/>
    <position name="yaw servo" joint="yaw" kp="3" kv="0.2" forcerange="-1 1"/>
    <general name="twist" joint="swing" gear="0.1 0.2 0.3" gainprm="1.5" biastype="affine"
      biasprm="0.1 -0.5 -0.02"/>
    <motor name="thrust" site="rotor" gear="0 0 1 0 0 0.1"/>
    <position name="reach" site="hand" refsite="ground" gear="0.5 1 0.2 0.1 0.2 0.3" kp="2"/>
    <intvelocity name="slow" joint="elbow" kp="0.7" actrange="-2 2"/>
    <general name="lag" joint="elbow" dyntype="filter" dynprm="0.05" gaintype="affine"
      gainprm="1 0.3 0.1"/>
  </actuator>
</mujoco>
"""

#: tendons of all kinds and muscles
TENDONS = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <site name="a" pos="-0.3 0.02 0.1"/>
    <site name="a2" pos="-0.3 -0.03 0.12"/>
    <geom name="drum" type="cylinder" size="0.05 0.1" pos="0 0 0.05" euler="1.5708 0 0"
      contype="0" conaffinity="0"/>
    <site name="over" pos="0 0 0.2"/>
    <body name="upper">
      <joint name="shoulder" axis="0 1 0" damping="0.05"/>
      <joint name="roll" axis="1 0 0.2" damping="0.05"/>
      <inertial pos="0.15 0 0" mass="1" diaginertia="0.002 0.01 0.01"/>
      <site name="b" pos="0.2 0.01 0.06"/>
      <site name="c" pos="0.25 0.02 -0.04"/>
      <geom name="ball" type="sphere" size="0.04" pos="0.3 0 0" contype="0" conaffinity="0"/>
      <site name="beside" pos="0.3 0 0.1"/>
      <geom name="ring" type="sphere" size="0.05" pos="0.1 0 0.02" contype="0" conaffinity="0"/>
      <site name="in" pos="0.1 0.01 0.02"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow" axis="0 1 0" damping="0.05"/>
        <inertial pos="0.1 0 0" mass="0.6" diaginertia="0.001 0.004 0.004"/>
        <site name="d" pos="0.15 0.01 0.05"/>
        <site name="e" pos="0.2 -0.01 -0.05"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="plain" stiffness="100 200 300" damping="2 1 3" springlength="0.3 0.5">
      <site site="a"/><site site="b"/><site site="d"/>
    </spatial>
    <spatial name="wraps">
      <site site="a"/><geom geom="drum" sidesite="over"/><site site="b"/>
      <geom geom="ball" sidesite="beside"/><site site="d"/>
    </spatial>
    <spatial name="near" stiffness="50">
      <site site="a2"/><geom geom="drum"/><site site="c"/><geom geom="ball"/><site site="e"/>
    </spatial>
    <spatial name="through">
      <site site="a2"/><geom geom="ring" sidesite="in"/><site site="e"/>
    </spatial>
    <spatial name="branches" actuatorfrcrange="-5 4">
      <site site="a"/><site site="b"/><pulley divisor="2"/><site site="b"/><site site="d"/>
      <pulley divisor="3"/><site site="c"/><site site="e"/>
    </spatial>
    <spatial name="heavy" armature="0.7"><site site="a2"/><site site="c"/><site site="e"/></spatial>
    <fixed name="sum" stiffness="2" damping="0.3" armature="0.05">
      <joint joint="shoulder" coef="0.3"/><joint joint="elbow" coef="-0.5"/>
    </fixed>
  </tendon>
  <actuator>
    <muscle name="flexor" tendon="wraps" force="60" lengthrange="0.4 0.7"/>
    <muscle name="extensor" tendon="near" scale="150" lengthrange="0.3 0.8" tausmooth="0.2"/>
    <motor name="pull" tendon="branches" gear="-2" ctrlrange="0 5"/>
    <position name="hold" tendon="branches" kp="40"/>
    <motor name="both" tendon="sum" gear="1.5"/>
    <general name="rotor" joint="elbow" gear="3" armature="0.01" damping="0.02 0.01 0.03"/>
  </actuator>
</mujoco>
"""

#: every limit and coupling, damped so that it comes to rest under gravity
CONSTRAINTS = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <site name="top" pos="0 2 1"/>
    <body name="stop" pos="0 0 0">
      <joint name="stop" axis="0 1 0" range="-0.5 0.3" damping="0.5"/>
      <inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
    </body>
    <body name="cone" pos="0 1 0">
      <joint name="cone" type="ball" range="0 0.4" damping="0.5"/>
      <inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
    </body>
    <body name="hung" pos="0 2 0">
      <joint name="hung" type="slide" axis="0 0 1" damping="20"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
      <site name="hook" pos="0.1 0 0"/>
    </body>
    <body name="follower" pos="0 3 0">
      <joint name="follower" axis="0 1 0" damping="0.5"/>
      <inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
    </body>
    <body name="pinned" pos="0 4 0">
      <joint name="pinned1" axis="0 1 0" damping="0.5"/>
      <inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
      <body name="link" pos="0.3 0 -0.3">
        <joint name="pinned2" axis="0 1 0" damping="0.5"/>
        <inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
      </body>
    </body>
    <body name="glued" pos="0.1 0 0.2">
      <freejoint/>
      <inertial pos="0.05 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="string" limited="true" range="0 1.1">
      <site site="top"/><site site="hook"/>
    </spatial>
    <fixed name="one"><joint joint="pinned1" coef="1"/></fixed>
    <fixed name="two"><joint joint="pinned2" coef="1"/></fixed>
  </tendon>
  <equality>
    <joint joint1="follower" joint2="stop" polycoef="0.1 0.5 0.3 0 0"/>
    <connect body1="link" anchor="0.4 0 0"/>
    <weld body1="glued"/>
    <tendon tendon1="one" tendon2="two" polycoef="0 -0.5 0 0 0" active="false"/>
  </equality>
</mujoco>
"""
